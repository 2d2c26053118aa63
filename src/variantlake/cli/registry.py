"""The commands in the order of the help: the module, help line and two examples of each.

This list loads no command, so help, completion and errors of usage are fast.
"""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """One command: its module below `variantlake.cli`, its line and panel in the help, examples.

    `function` is the name of its function, if it is not that of the command.
    """

    module: str
    line: str
    panel: str
    examples: tuple[str, str]
    function: str = ""


COMMITTING = {
    *(
        "create",
        "ingest",
        "stage",
        "convert",
        "autoload",
        "mirror",
        "loads",
        "tag",
        "clone",
        "restore",
    ),
    *("delete", "update", "merge", "set", "unset", "alter", "erase", "drop-feature"),
    *("optimize", "cluster", "reshred", "vacuum", "analyze"),
}
"""The commands that commit versions, whose history entries can have commit properties."""

_LOAD, _READ, _CHANGE = "Load", "Read", "Change"
_LOOK, _MAINTAIN = "Look at a table", "Maintain a table"

COMMANDS: dict[str, CommandEntry] = {
    "create": CommandEntry(
        "tables.create",
        "Create an empty table.",
        _LOAD,
        (
            "variantlake create /lake/events",
            "variantlake create /lake/events 'event VARIANT, day DATE' --partition-by day",
        ),
    ),
    "ingest": CommandEntry(
        "loads.load",
        "Load JSON documents in one commit.",
        _LOAD,
        (
            "variantlake ingest 'events/*.ndjson.gz' /lake/events",
            "variantlake ingest - /lake/events --mode quarantine < events.ndjson",
        ),
    ),
    "stage": CommandEntry(
        "loads.stage",
        "Write a load first, publish it later.",
        _LOAD,
        (
            "variantlake stage /lake/events 2026-11-26 --load 'events/*.ndjson'",
            "variantlake stage /lake/events 2026-11-26 --check 'event:n::int > 0' --publish",
        ),
    ),
    "convert": CommandEntry(
        "loads.convert",
        "Load Parquet files in one commit.",
        _LOAD,
        (
            "variantlake convert /raw/events /lake/events --json-column payload",
            "variantlake convert /raw/events /lake/events --dry-run",
        ),
    ),
    "autoload": CommandEntry(
        "loads.autoload",
        "Load new files of a folder or bucket, each once.",
        _LOAD,
        (
            "variantlake autoload s3://incoming/events /lake/events",
            "variantlake autoload incoming /lake/events --every 30s",
        ),
    ),
    "mirror": CommandEntry(
        "loads.mirror",
        "Keep a table of chosen paths that every Delta reader reads.",
        _LOAD,
        (
            "variantlake mirror /lake/events /lake/typed --select 'event:n::bigint AS n'",
            "variantlake mirror /lake/events /lake/events_typed --every 5m",
        ),
    ),
    "loads": CommandEntry(
        "loads.loads",
        "Show what autoloads did with each file.",
        _LOAD,
        (
            "variantlake loads /lake/events --state failed",
            "variantlake loads /lake/events --retry --file '2026/**'",
        ),
    ),
    "query": CommandEntry(
        "query",
        "Run a query.",
        _READ,
        (
            'variantlake query /lake/events "SELECT avg(event:n::int) AS mean FROM t"',
            'variantlake query /lake/events "SELECT event FROM t LIMIT 3" --explain',
        ),
    ),
    "sql": CommandEntry(
        "sql",
        "Query tables at a prompt.",
        _READ,
        (
            "variantlake sql /lake/events",
            "variantlake sql e=/lake/events u=/lake/users --engine duckdb < query.sql",
        ),
    ),
    "cat": CommandEntry(
        "tables.cat",
        "Print rows as JSON.",
        _READ,
        (
            "variantlake cat /lake/events --limit 3",
            "variantlake cat part-00000.parquet --column event",
        ),
    ),
    "export": CommandEntry(
        "export",
        "Write rows into a file of Parquet, CSV or JSON lines.",
        _READ,
        (
            "variantlake export /lake/events events.parquet",
            "variantlake export /lake/events kinds.csv --select 'event:kind::string AS k'",
        ),
    ),
    "changes": CommandEntry(
        "changes.changes",
        "Print the change data feed.",
        _READ,
        (
            "variantlake changes /lake/events --from 41",
            "variantlake changes /lake/events --from 2026-11-01 --to 2026-11-02",
        ),
    ),
    "serve": CommandEntry(
        "serve",
        "Serve Spark Connect and JDBC.",
        _READ,
        (
            "variantlake serve --port 15002",
            "variantlake serve --thrift-port 10000 --conf spark.driver.memory=4g",
        ),
    ),
    "history": CommandEntry(
        "tables.history",
        "List versions, newest first.",
        _READ,
        (
            "variantlake history /lake/events",
            "variantlake history /lake/events --limit 5 --json",
        ),
    ),
    "delete": CommandEntry(
        "changes.delete",
        "Delete rows in one commit.",
        _CHANGE,
        (
            "variantlake delete /lake/events --where \"event:user::string = 'u7'\" --dry-run",
            'variantlake delete /lake/events --where "event:n::int < 0"',
        ),
    ),
    "update": CommandEntry(
        "changes.update",
        "Update rows in one commit.",
        _CHANGE,
        (
            'variantlake update /lake/users --set kind=new --where "id = 7" --dry-run',
            'variantlake update /lake/users --set-sql "n=n + 1"',
        ),
    ),
    "merge": CommandEntry(
        "changes.merge",
        "Merge the rows of another table.",
        _CHANGE,
        (
            "variantlake merge /lake/users /lake/new_users --on 't.id = s.id'",
            "variantlake merge a b --on 't.id = s.id' --when 'MATCHED THEN DELETE'",
        ),
    ),
    "set": CommandEntry(
        "tables.properties",
        "Set properties of a table.",
        _CHANGE,
        (
            "variantlake set /lake/events delta.enableDeletionVectors=true",
            "variantlake set /lake/events variantlake.clusterBy=event:kind::string",
        ),
        "set_properties",
    ),
    "unset": CommandEntry(
        "tables.properties",
        "Remove properties of a table.",
        _CHANGE,
        (
            "variantlake unset /lake/events variantlake.clusterBy",
            "variantlake unset /lake/events delta.logRetentionDuration --json",
        ),
        "unset_properties",
    ),
    "contract": CommandEntry(
        "tables.contract",
        "Show, set or drop what documents must be like.",
        _CHANGE,
        (
            "variantlake contract /lake/events",
            "variantlake contract /lake/events contract.json",
        ),
    ),
    "alter": CommandEntry(
        "tables.alter",
        "Change columns and constraints of a table.",
        _CHANGE,
        (
            "variantlake alter /lake/events 'ADD COLUMN a INT' 'ALTER COLUMN a FIRST'",
            "variantlake alter /lake/events 'RENAME COLUMN kind TO type'",
        ),
    ),
    "erase": CommandEntry(
        "changes.erase",
        "Erase rows for good, also from older versions.",
        _CHANGE,
        (
            "variantlake erase /lake/events --where \"event:user::string = 'u7'\" --dry-run",
            "variantlake erase /lake/events --where \"event:user::string = 'u7'\" --yes",
        ),
    ),
    "restore": CommandEntry(
        "maintenance.restore",
        "Bring an older version back.",
        _CHANGE,
        (
            "variantlake restore /lake/events --version 41",
            "variantlake restore /lake/events --timestamp '2026-11-01 12:00' --dry-run",
        ),
    ),
    "tag": CommandEntry(
        "maintenance.tag",
        "Name a version, and keep it; list the names.",
        _MAINTAIN,
        (
            "variantlake tag /lake/events audit-2026 --version 41",
            "variantlake tag /lake/events audit-2026 --delete",
        ),
    ),
    "clone": CommandEntry(
        "maintenance.clone",
        "Make a table with the rows of another one.",
        _MAINTAIN,
        (
            "variantlake clone /lake/events /lake/events_test",
            "variantlake clone /lake/events /backup/events --deep --version audit-2026",
        ),
    ),
    "info": CommandEntry(
        "tables.info",
        "Show columns, rows, files and properties.",
        _LOOK,
        (
            "variantlake info /lake/events",
            "variantlake info /lake/events --version 3 --json",
        ),
    ),
    "inspect": CommandEntry(
        "tables.inspect",
        "Show how VARIANT columns are shredded.",
        _LOOK,
        (
            "variantlake inspect /lake/events",
            "variantlake inspect part-00000.parquet --why",
        ),
    ),
    "profile": CommandEntry(
        "tables.profile",
        "Show the paths of a table, a file or documents.",
        _LOOK,
        (
            "variantlake profile 'events/*.ndjson.gz'",
            "variantlake profile /lake/events --as-view events_view --over events",
        ),
    ),
    "report": CommandEntry(
        "tables.report",
        "Write an HTML report on a table.",
        _LOOK,
        (
            "variantlake report /lake/events -o events.html",
            'variantlake report /lake/events --query "SELECT event FROM t LIMIT 9"',
        ),
    ),
    "health": CommandEntry(
        "maintenance.health",
        "Show what makes a table slow or large.",
        _LOOK,
        (
            "variantlake health /lake/events",
            "variantlake health /lake/events --orphans --fail-on warning",
        ),
    ),
    "drift": CommandEntry(
        "maintenance.drift",
        "Show what is in residuals, by version.",
        _LOOK,
        (
            "variantlake drift /lake/events",
            "variantlake drift /lake/events --column event --json",
        ),
    ),
    "check": CommandEntry(
        "tables.check",
        "Check files against the specifications.",
        _LOOK,
        (
            "variantlake check /lake/events --deep --from 41 --to 57",
            "variantlake check /lake/events --contract contract.json",
        ),
    ),
    "optimize": CommandEntry(
        "maintenance.optimize",
        "Join small files.",
        _MAINTAIN,
        (
            "variantlake optimize /lake/events --dry-run",
            "variantlake optimize /lake/events --where \"day = '2026-11-20'\"",
        ),
    ),
    "cluster": CommandEntry(
        "maintenance.cluster",
        "Order rows across files.",
        _MAINTAIN,
        (
            "variantlake cluster /lake/events --by event:kind::string",
            "variantlake cluster /lake/events --budget 2GB",
        ),
    ),
    "reshred": CommandEntry(
        "maintenance.reshred",
        "Change which paths are typed columns.",
        _MAINTAIN,
        (
            "variantlake reshred /lake/events",
            "variantlake reshred /lake/events --shredding 'kind STRING, ts BIGINT'",
        ),
    ),
    "vacuum": CommandEntry(
        "maintenance.vacuum",
        "Delete files that no recent version needs.",
        _MAINTAIN,
        (
            "variantlake vacuum /lake/events --dry-run",
            "variantlake vacuum /lake/events --quarantine --yes",
        ),
    ),
    "analyze": CommandEntry(
        "tables.analyze",
        "Add missing statistics to files of other writers.",
        _MAINTAIN,
        (
            "variantlake analyze /lake/events",
            "variantlake analyze /lake/events --dry-run",
        ),
    ),
    "checkpoint": CommandEntry(
        "maintenance.checkpoint",
        "Write a checkpoint of the newest version.",
        _MAINTAIN,
        (
            "variantlake checkpoint /lake/events",
            "variantlake checkpoint /lake/events --json",
        ),
    ),
    "drop-feature": CommandEntry(
        "maintenance.drop_feature",
        "Remove variantShredding from the protocol.",
        _MAINTAIN,
        (
            "variantlake drop-feature /lake/events --dry-run",
            "variantlake drop-feature /lake/events variantShredding",
        ),
    ),
}

SYNONYMS = {
    **dict.fromkeys(("append", "insert", "import", "load", "write"), "ingest"),
    **dict.fromkeys(("head", "read", "scan", "show"), "cat"),
    **dict.fromkeys(("columns", "count", "describe", "detail", "schema"), "info"),
    **dict.fromkeys(("compact", "bin-pack"), "optimize"),
    **dict.fromkeys(("clean", "cleanup", "gc"), "vacuum"),
    **dict.fromkeys(("select",), "query"),
    **dict.fromkeys(("shell", "repl"), "sql"),
    **dict.fromkeys(("log", "versions"), "history"),
    **dict.fromkeys(("upsert",), "ingest --unique-by"),
    **dict.fromkeys(("files",), "inspect"),
    **dict.fromkeys(("tags",), "tag"),
    **dict.fromkeys(("add-column", "drop-column", "rename-column"), "alter"),
    **dict.fromkeys(("replace", "replace-where"), "ingest --overwrite"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("rollback", "undo"), "restore"),
    **dict.fromkeys(("cdf", "diff"), "changes"),
    **dict.fromkeys(("zorder", "z-order"), "cluster"),
}
"""Commands of other programs, and ours with the same purpose."""
