"""The command ``nlpkit``, and ``python -m nlpkit``."""

from nlpkit.signals import run_interruptible


def main() -> None:
    """Answer signals from now on, then load and run the rest."""
    run_interruptible(_run)


def _run() -> None:
    from nlpkit.cli.main import run

    run()


if __name__ == "__main__":
    main()
