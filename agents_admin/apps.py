from django.apps import AppConfig


class AgentsAdminConfig(AppConfig):
    name = "agents_admin"
    verbose_name = "Configuration"
    default_auto_field = "django.db.models.BigAutoField"
