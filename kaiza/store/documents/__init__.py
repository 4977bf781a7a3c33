"""Plan files, report files and the files that `kaiza init` creates."""
