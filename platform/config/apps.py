from django.apps import AppConfig, apps
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig


class RosterAdminConfig(AdminConfig):
    default_site = "config.admin_site.RosterAdminSite"


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Configuration"

    def ready(self) -> None:
        # Stock admins of the task queue let a person schedule any function by its dotted path.
        for model in apps.get_app_config("django_q").get_models():
            if admin.site.is_registered(model):
                admin.site.unregister(model)
