"""Fields in which rows are searched and chosen."""

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.widgets import AutocompleteMixin, AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import ValidationError


class _Ids(AutocompleteMixin):
    """What was posted that can't be an id is left out when the form comes back: Django would look it up and fail."""

    field: Any

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> Any:
        return super().optgroups(name, [each for each in value if self._can_be(each)], attr)

    def _can_be(self, value: str) -> bool:
        try:
            self.field.remote_field.model._meta.pk.to_python(value)
        except ValidationError:
            return False
        return True


class ChooseRow(_Ids, AutocompleteSelect):
    pass


class ChooseRows(_Ids, AutocompleteSelectMultiple):
    pass
