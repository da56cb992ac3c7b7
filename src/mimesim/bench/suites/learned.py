"""Learned discriminators: who wrote this, a person or the user that is measured?

Everything is scored by a model that saw neither the conversation nor its counterpart: folds are
made of whole groups, and scaling and word statistics are fitted inside each fold (the original fits
its scaler on all data).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mimesim.errors import MissingExtraError, UsageError

FOLDS = 5
_TREES, _DEPTH, _SEED = 200, 12, 42

Learner = Callable[[], Any]
"""Makes an unfitted scikit-learn classifier with `predict_proba`."""


def forest() -> Any:
    """Return the random forest of benchmarks.md 13 over standardized features."""
    _needed()
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    trees = RandomForestClassifier(
        n_estimators=_TREES,
        max_depth=_DEPTH,
        class_weight="balanced",
        random_state=_SEED,
        n_jobs=1,
    )
    return make_pipeline(StandardScaler(), trees)


def characters() -> Any:
    """Return a logistic regression over runs of one to four characters of all messages.

    It reads the words themselves, so it is harder to deceive than features that count them.
    """
    _needed()
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), min_df=2, sublinear_tf=True, lowercase=False
    )
    return make_pipeline(words, LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000))


def out_of_fold(
    learner: Learner, rows: Sequence[Any], human: Sequence[bool], groups: Sequence[str]
) -> list[float]:
    """Return P(human) of every row, by a classifier that saw no row of its group.

    Args:
        learner: makes the classifier.
        rows: feature rows or texts.
        human: which rows are of people.
        groups: what stays together, e.g. the dialogue that a person and the user both wrote in.

    Raises:
        UsageError: too few groups of a kind.
    """
    _needed()
    from sklearn.model_selection import StratifiedGroupKFold

    for kind in (True, False):
        have = len({g for g, h in zip(groups, human, strict=True) if h is kind})
        if have < FOLDS:
            side = "people" if kind else "the user"
            raise UsageError(
                f"only {have} separate conversations of {side}",
                where="discriminator",
                expected=f"at least {FOLDS}, one for each fold",
            )
    labels = [int(h) for h in human]
    found = [0.0] * len(rows)
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=_SEED)
    for train, test in folds.split(list(range(len(rows))), labels, list(groups)):
        model = learner()
        model.fit([rows[i] for i in train], [labels[i] for i in train])
        column = list(model.classes_).index(1)
        for i, chances in zip(test, model.predict_proba([rows[j] for j in test]), strict=True):
            found[i] = float(chances[column])
    return found


def _needed() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError.for_extra("the discriminator", "bench") from error
