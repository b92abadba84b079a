from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agents_admin import demo
from agents_admin.models import Agent, Model, Provider
from agents_admin.portable.applying import apply
from agents_admin.portable.problem import BundleError

PROVIDER = "openai"
REFERENCE = "${OPENAI_API_KEY}"
DEFAULT_MODEL = "gpt-5-mini"


class Command(BaseCommand):
    help = "Fills in the demo agents when there are no agents, and gives them the provider of OPENAI_… when it is set."

    def handle(self, *args: Any, **options: Any) -> None:
        if not Agent.objects.exists():
            try:
                apply(demo.BUNDLE, {})
            except BundleError as error:
                raise CommandError(f"The demo was not filled in.\n{error}") from None
            self.stdout.write("The demo agents are filled in: Concierge, HR desk, Librarian and Analyst.")
        if settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL or settings.OPENAI_MODEL:
            self._use_provider()

    def _use_provider(self) -> None:
        """A wrong address must not keep Roster from starting: the demo then stays as it is, and says why."""
        try:
            with transaction.atomic():
                provider = renewed_provider()
                model = Model.objects.filter(slug=demo.MODEL, provider__kind="offline").first()
                if model:
                    give(model, provider)
                    self.stdout.write(f"The demo uses {model.model_id} at {provider.origin()}.")
        except ValidationError as error:
            self.stderr.write(f"The provider of OPENAI_BASE_URL can't be used: {' '.join(error.messages)}")


def renewed_provider() -> Provider:
    """The provider of the environment. One whose key people have typed themselves is theirs and stays as it is."""
    provider = Provider.objects.filter(slug=PROVIDER).first()
    if provider and provider.secret_reference != REFERENCE:
        return provider
    provider = provider or Provider(slug=PROVIDER, name="OpenAI (from the environment)", secret_reference=REFERENCE)
    provider.base_url = settings.OPENAI_BASE_URL
    provider.api_key = settings.OPENAI_API_KEY
    provider.full_clean()
    provider.save()
    return provider


def give(model: Model, provider: Provider) -> None:
    """Point the demo's model at the provider: only ever from the offline one, so people's choice is not undone."""
    model.provider = provider
    model.model_id = settings.OPENAI_MODEL or DEFAULT_MODEL
    model.full_clean()
    model.save()
