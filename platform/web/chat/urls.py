from django.urls import URLPattern, URLResolver, path

from web.chat import decide, threads, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("chat/", views.start_page, name="chat"),
    path("chat/send/", views.send, name="chat-send"),
    path("chat/threads/", threads.more, name="chat-threads"),
    path("chat/<uuid:thread>/", views.thread_page, name="chat-thread"),
    path("chat/<uuid:thread>/rename/", threads.rename, name="chat-rename"),
    path("chat/<uuid:thread>/delete/", threads.delete, name="chat-delete"),
    path("chat/runs/<uuid:run>/stream/", views.stream, name="chat-stream"),
    path("chat/runs/<uuid:run>/stop/", views.stop, name="chat-stop"),
    path("chat/runs/<uuid:run>/review/<uuid:call>/", decide.decide, name="chat-review"),
]
