"""Users and groups in Unfold's forms. Nobody gives anybody, themselves included, rights that a superuser didn't."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import ReadOnlyPasswordHashWidget
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group, User
from django.db import models
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from agents_admin.admin.page import ModelPage

_RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


class PasswordSaid(ReadOnlyPasswordHashWidget):
    """In one word: how a password is kept is nothing that an administrator can do anything with."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = self.get_context(name, value, attrs)
        return render_to_string("admin/parts/password.html", context | {"is_set": value and is_password_usable(value)})


class PersonForm(UserChangeForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].widget = PasswordSaid()


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelPage):  # type: ignore[misc]
    form = PersonForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
    autocomplete_fields = ("groups",)
    never_shown = ("password",)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        own = ("last_login", "date_joined")
        return own if request.user.is_superuser else (*own, *_RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelPage):  # type: ignore[misc]
    """A group holds permissions, so only superusers make and change groups."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return bool(request.user.is_superuser)


def _may_touch(request: HttpRequest, row: models.Model | None) -> bool:
    """Who may change a password may sign in as that person: staff are superusers' to change, superusers included."""
    if row is None or request.user.is_superuser:
        return True
    return isinstance(row, User) and not row.is_staff and not row.is_superuser
