"""The local engine: read sources, write files and run scan plans in this process, with Arrow."""
