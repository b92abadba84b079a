"""What every page of the admin does: turn a refusal while saving into words at the row, answer a search that can't be
understood, and lead on from an empty list."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import ActionLocation
from django.contrib.admin.options import SOURCE_MODEL_VAR, IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.core.exceptions import FieldDoesNotExist, SuspiciousOperation, ValidationError
from django.db import DataError, IntegrityError, models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.admin import ModelAdmin, StackedInline, TabularInline
from unfold.forms import PaginationInlineFormSet
from unfold.mixins import FormFieldModelAdminMixin
from unfold.widgets import UnfoldAdminExpandableTextareaWidget

from agents_admin.admin.choice import ChooseRow, ChooseRows

# What Django lets an address ask for, and only the database or a field finds out that it can't be: `name__regex=(`.
_NOT_UNDERSTOOD = (DataError, ValueError, LookupError, OverflowError, IncorrectLookupParameters)


_NEVER_SENT_BACK = {
    "password": "Nothing was saved yet, and this is never sent back to a page: enter it again.",
    "file": "Nothing was saved yet, and browsers don't send a file twice: choose it again.",
}
"""By the type of an input: what is said when the form has to be filled in once more."""


class SaveRefused(Exception):  # noqa: N818 - what happened, not a mistake of ours
    """A row was refused while it was written: `prefix` names the form of that row in its table."""

    def __init__(self, prefix: str, errors: ValidationError) -> None:
        super().__init__(prefix)
        self.prefix = prefix
        self.errors = errors


class PartFormSet(PaginationInlineFormSet):
    """A row that somebody else deleted while the form was open stays deleted: Django would refuse the whole form, for
    ever, because of an id that nobody sees."""

    def gone(self) -> list[Any]:
        return [form for form in self.initial_forms if form.instance.pk is None]

    def _should_delete_form(self, form: Any) -> bool:
        return super()._should_delete_form(form) or form in self.gone()


class RefusableFormSet(PartFormSet):
    """Rows whose `save` may raise ValidationError, which validation before could not foresee."""

    def save_new(self, form: Any, commit: bool = True) -> Any:
        try:
            return super().save_new(form, commit)
        except ValidationError as error:
            raise SaveRefused(form.prefix or "", error) from None

    def save_existing(self, form: Any, obj: Any, commit: bool = True) -> Any:
        try:
            return super().save_existing(form, obj, commit)
        except ValidationError as error:
            raise SaveRefused(form.prefix or "", error) from None


class PlainFields(FormFieldModelAdminMixin):
    """Texts that grow with what is typed, and words for an empty choice."""

    formfield_overrides: ClassVar[dict[Any, Any]] = {models.TextField: {"widget": UnfoldAdminExpandableTextareaWidget}}
    empty_choices: ClassVar[dict[str, str]] = {}
    """What an empty choice means, by field."""

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_choice_field(db_field, request, **kwargs)
        if db_field.name in self.empty_choices:
            field.choices = [("", self.empty_choices[db_field.name]), *db_field.choices]
        return field

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", ChooseRow(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", ChooseRows(db_field, self.admin_site))
        return super().formfield_for_manytomany(db_field, request, **kwargs)


class TablePart(PlainFields, TabularInline):
    """Rows of another table on the page of the row they belong to, one per line."""

    formset = PartFormSet


class StackPart(PlainFields, StackedInline):
    """The same, one below the other."""


class ModelPage(PlainFields, ModelAdmin):
    list_filter_sheet = False
    warn_unsaved_form = True
    next_step = ""
    """What to do when the list is empty."""
    never_shown: ClassVar[tuple[str, ...]] = ()
    """Fields of the form that a page to look at leaves out: Django would show what the row holds, secrets included."""

    class Media:
        js = ("js/admin-forms.js",)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """A refused save was rolled back whole; the form is then shown again with the reason. Somebody else's save in
        between (IntegrityError) shows as an ordinary error of the second look."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except SaveRefused as refused:
            request.save_refused = refused  # type: ignore[attr-defined]
        except IntegrityError:
            pass
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _create_formsets(self, request: HttpRequest, obj: models.Model, change: bool) -> tuple[list[Any], list[Any]]:
        formsets, inlines = super()._create_formsets(request, obj, change)
        refused: SaveRefused | None = vars(request).get("save_refused")
        if refused:
            for formset in formsets:
                formset.is_valid()  # else add_error has nothing to add to
                for form in formset.forms:
                    if form.prefix == refused.prefix:
                        form.add_error(None, refused.errors)
        return formsets, inlines

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (title, options | {"fields": [name for name in options["fields"] if name not in self.never_shown]})
            for title, options in fieldsets
        ]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """A form that comes back says which of its fields are empty although something was given."""
        form = context["adminform"].form
        for name, field in form.fields.items() if form.is_bound else ():
            words = _NEVER_SENT_BACK.get(getattr(field.widget, "input_type", ""))
            if words and field.widget.value_from_datadict(form.data, form.files, form.add_prefix(name)):
                form.add_error(name, words)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """What is about to be saved is locked before it is read, so that of two saves at once none undoes the other's
        with values that it had read before."""
        row = super().get_object(request, object_id, from_field)
        if row is None or request.method != "POST" or not transaction.get_connection().in_atomic_block:
            return row
        self.opts.model._default_manager.select_for_update(no_key=True).filter(pk=row.pk).first()
        return super().get_object(request, object_id, from_field)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> Any:
        """What came to refer to the row while it was deleted (IntegrityError) goes with it, or keeps it, at the second
        look."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except IntegrityError:
            return super().delete_view(request, object_id, extra_context)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        for _ in formset.gone():
            words = f"One of the {formset.model._meta.verbose_name_plural} was deleted by somebody else meanwhile."
            self.message_user(request, words, messages.WARNING)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> Any:
        """Django takes this value of a popup apart without looking at it."""
        if "." not in request.POST.get(SOURCE_MODEL_VAR, "."):
            raise SuspiciousOperation("A popup must name the model that it was opened for.")
        return super().response_add(request, obj, post_url_continue)

    def row_or_404(self, request: HttpRequest, object_id: str) -> Any:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        return row

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What the address fills in; ids that can't be any are left out, and times, which have two inputs."""
        given = super().get_changeform_initial_data(request)
        return {name: value for name, value in given.items() if self._can_be(name, value)}

    def _can_be(self, name: str, value: Any) -> bool:
        try:
            field = self.opts.get_field(name)
            for each in value if isinstance(value, list) else [value]:
                if field.related_model:
                    field.related_model._meta.pk.to_python(each)
        except (FieldDoesNotExist, ValidationError):
            return False
        return not isinstance(field, models.DateTimeField)

    def get_action_choices(
        self, request: HttpRequest, default_choices: Any = None, action_location: Any = ActionLocation.CHANGE_LIST
    ) -> list[tuple[str, str]]:
        """Django's own: Unfold's has the signature from before Django 6.1, which Django warns about."""
        choices = default_choices or [("", "Select action")]
        return admin.ModelAdmin.get_action_choices(self, request, choices, action_location)

    def response_action(self, request: HttpRequest, queryset: models.QuerySet[Any], **kwargs: Any) -> Any:
        """All of what was chosen, or nothing; after somebody else's save in between it is looked at once more."""
        try:
            try:
                with transaction.atomic():
                    return super().response_action(request, queryset, **kwargs)
            except IntegrityError:
                with transaction.atomic():
                    return super().response_action(request, queryset, **kwargs)
        except (ValueError, ValidationError):
            self.message_user(request, "What was chosen can't be found. Nothing was changed.", messages.WARNING)
            return None

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """`next_step` for the list's template: only when nothing was searched or filtered."""
        try:
            changelist = super().get_changelist_instance(request)
            len(changelist.result_list)  # asks the database
        except _NOT_UNDERSTOOD:
            self.message_user(
                request, "This search or filter can't be understood. Here is everything.", messages.WARNING
            )
            raise IncorrectLookupParameters from None
        changelist.next_step = "" if request.GET or changelist.result_count else self.next_step
        return changelist


def after_dialog(request: HttpRequest, url: str) -> HttpResponse:
    """Leads on from an action's dialog, which htmx posts, or from a plain post of the same form."""
    return HttpResponse(headers={"HX-Redirect": url}) if "HX-Request" in request.headers else HttpResponseRedirect(url)
