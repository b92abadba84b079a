from django.apps import AppConfig


class AgentsAdminConfig(AppConfig):
    name = "agents_admin"
    verbose_name = "Agents"
    default_auto_field = "django.db.models.BigAutoField"
