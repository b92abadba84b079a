"""What the chaos tests measured, told at the end of the session."""

FIGURES: list[tuple[str, str]] = []


def figure(target: str, words: str) -> None:
    FIGURES.append((target, words))
