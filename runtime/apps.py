from django.apps import AppConfig


class RuntimeConfig(AppConfig):
    name = "runtime"
    verbose_name = "What happened"
    default_auto_field = "django.db.models.BigAutoField"
