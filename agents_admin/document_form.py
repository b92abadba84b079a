"""A document as pasted text or an uploaded file."""

from pathlib import PurePath
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from unfold.widgets import UnfoldAdminFileFieldWidget

from agents_admin.models import Document
from agents_admin.text import clean

MAX_BYTES = 5_000_000
_ENDINGS = (".txt", ".md", ".markdown")


class DocumentForm(forms.ModelForm):
    upload = forms.FileField(
        label="File",
        required=False,
        widget=UnfoldAdminFileFieldWidget,
        help_text="A .txt or .md file of 5 MB at most. It replaces the text below.",
    )

    class Meta:
        model = Document
        fields = ("memory", "title", "text")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "title" in self.fields:
            self.fields["title"].required = False
            self.fields["title"].help_text = "Agents name it as their source. Empty: the name of the file."

    def clean_upload(self) -> UploadedFile | None:
        upload: UploadedFile | None = self.cleaned_data["upload"]
        if upload:
            self.text_of_file = read_text(upload)
        return upload

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        upload = values.get("upload")
        if upload:
            values["text"] = self.text_of_file
            values["title"] = values.get("title") or clean(PurePath(str(upload.name)).stem)[:200]
        if not values.get("title") and "title" not in self.errors:
            self.add_error("title", "Give it a title.")
        if not values.get("text") and not {"text", "upload"} & set(self.errors):
            self.add_error("text", "Paste a text here or choose a file.")
        if len(values.get("text") or "") > MAX_BYTES:
            self.add_error(
                "text", "This text is too long: 5 million characters at most. Split it into several documents."
            )
        return values


def read_text(upload: UploadedFile) -> str:
    """The clean text of an uploaded file. Raises ValidationError in words."""
    if not str(upload.name).lower().endswith(_ENDINGS):
        raise ValidationError("Only .txt and .md files can be read. Save it as plain text, or paste the text below.")
    if (upload.size or 0) > MAX_BYTES:
        raise ValidationError("This file is larger than 5 MB. Split it into several documents.")
    upload.seek(0)  # a second look after a refused save reads it again
    try:
        return clean(upload.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValidationError(
            f"This file is not UTF-8 text (byte {error.start + 1} can't be read). Save it with the encoding UTF-8."
        ) from None
