"""One module for each generated corpus; each has `make(random) -> {file name: text}`."""
