"""The rewrite engine: replace files of a table by new files with the same rows.

In: groups of files. Out: new files with their facts, and one commit that replaces the old files.
Compaction, clustering and re-shredding use it, in three calls:

    plan = RewritePlan.of(snapshot, ...)         plan how to write files; pickles (`rewrite_group`)
    done = rewrite_group(plan, group)            rewrite one `FileGroup`, in any task
    commit_rewrite(snapshot, plan, ...)          commit all groups whose files are still there

A `FileGroup` (`groups`) names its input files, the partition, and the layout that each Variant
column gets (`layouts`). Variant columns of files with this layout are copied column by column; the
Variants of other files are rebuilt and shredded anew (`stored_rows`). `run_rewrite` (`run`) does
all of it in steps, with a runner of tasks, and plans again if another writer changed files first.
"""
