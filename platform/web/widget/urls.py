from django.urls import URLPattern, URLResolver, path

from web.widget import door, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("widget.js", views.loader, name="widget-loader"),
    path("widget/<uuid:widget>/", views.frame, name="widget"),
    path("widget/<uuid:widget>/look/", door.look, name="widget-look"),
    path("widget/<uuid:widget>/token/", door.token, name="widget-token"),
    path("widget/<uuid:widget>/forget/", door.forget, name="widget-forget"),
    path("widget/<uuid:widget>/conversation/", views.conversation, name="widget-conversation"),
    path("widget/<uuid:widget>/send/", views.send, name="widget-send"),
    path("widget/<uuid:widget>/runs/<uuid:run>/stream/", views.stream, name="widget-stream"),
    path("widget/<uuid:widget>/runs/<uuid:run>/stop/", views.stop, name="widget-stop"),
]
