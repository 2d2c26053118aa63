"""The rewrite engine: files of a table become other files, and no row changes.

In: groups of files. Out: new files with their facts, and one commit in which they take the place of
the old ones. Compaction, clustering and re-shredding share it, in three calls:

    plan = RewritePlan.of(snapshot, ...)         how files are written; pickles (`rewrite_group`)
    done = rewrite_group(plan, group)            one `FileGroup` to new files, in any task
    commit_rewrite(snapshot, plan, ...)          all groups whose files are still there, one commit

A `FileGroup` (`groups`) names its input files, the partition, and the layout that each Variant
column gets (`layouts`). Files that have this layout pass column by column; of the others the
Variants are rebuilt and shredded anew (`stored_rows`). `run_rewrite` (`run`) does all of it in
steps, with a runner of tasks, and plans again what another writer was first to change.
"""
