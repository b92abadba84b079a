from django.db import migrations

_OURS = """
DO $$
DECLARE reference record;
BEGIN
    FOR reference IN
        SELECT conrelid::regclass AS place, conname AS name, pg_get_constraintdef(oid) AS words
        FROM pg_constraint
        WHERE contype = 'f' AND confdeltype = 'a' AND confrelid IN ('runtime_run'::regclass, 'runtime_thread'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', reference.place, reference.name);
        EXECUTE format(
            'ALTER TABLE %s ADD CONSTRAINT %I %s', reference.place, reference.name,
            replace(reference.words, ' DEFERRABLE', ' ON DELETE CASCADE DEFERRABLE')
        );
    END LOOP;
END $$
"""


class Migration(migrations.Migration):
    """What happened to a run goes with it, also what is written while Django deletes what it has seen of it."""

    dependencies = [("runtime", "0003_collapse")]

    operations = [migrations.RunSQL(_OURS, migrations.RunSQL.noop)]
