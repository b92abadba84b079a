"""What the web keeps for itself."""

from django.db import models


class WidgetUse(models.Model):
    """How often something happened on a widget in one hour or day (`slot` is when that began), to hold its quotas.

    `who` is counted: `v:` a visitor, `a:` an address and `n:` new visitors of an address (the address as a keyed hash),
    `all` everybody. Rows of the day before yesterday are deleted.
    """

    pk = models.CompositePrimaryKey("widget_id", "slot", "who")
    widget = models.ForeignKey("agents_admin.Widget", on_delete=models.CASCADE, related_name="+", db_index=False)
    slot = models.DateTimeField()
    who = models.CharField(max_length=80)
    times = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.who} since {self.slot}: {self.times}"
