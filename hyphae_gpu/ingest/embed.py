"""Vectors made from texts: the built-in LSA embedder, or a sentence-transformers model (interfaces.md, `--embed`).

LSA is TF-IDF followed by a truncated SVD, fitted once on the texts of a store's first ingest. What was fitted is a few
arrays, kept in the store, so that later texts get vectors of the same space. The fit has a fixed seed and runs BLAS on
one thread: the same texts on the same kind of machine give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hyphae_gpu.errors import DatabaseError, UsageError
from hyphae_gpu.ingest.problems import quote

#: The space of vectors that came with the rows.
GIVEN: Final = "given"
LSA: Final = "lsa"
MODEL_PREFIX: Final = "sentence-transformers:"

#: Every LSA vector has this length. A corpus of lower rank leaves the last components zero.
LSA_DIMENSION: Final = 256
_TERMS: Final = 30_000
_RARE_BELOW: Final = 1_000
_ARRAYS: Final = ("vocabulary", "idf", "components")

Arrays = dict[str, npt.NDArray[Any]]
Vectors = npt.NDArray[np.float32]


def check_name(name: str) -> None:
    """Raise UsageError unless `name` is an embedder's."""
    if name != LSA and not (name.startswith(MODEL_PREFIX) and name != MODEL_PREFIX):
        raise UsageError(f"--embed {name}: expected {LSA} or {MODEL_PREFIX}NAME")


def fit(texts: Sequence[str], *, space: str) -> Arrays:
    """Return the arrays that a new store keeps for an embedder: fitted ones for `lsa`, none for a model.

    vocabulary uint8: the terms, UTF-8, joined by newlines; idf float64 [t]; components float32 [t, 256].
    """
    return _fit_lsa(texts) if space == LSA else {}


def embed_texts(texts: Sequence[str], *, space: str, arrays: Arrays) -> Vectors:
    """Return unit vectors float32 [n, d] of texts in a store's embedding space.

    `arrays` are what the store kept of its embedder. A text of which LSA knows no term gets a direction of its own,
    drawn from the text: it finds its equal and is near nothing else. Raises UsageError where the space has no embedder
    or its package or model is missing, DatabaseError where the arrays are.
    """
    if space == GIVEN:
        raise UsageError("the store's vectors came with its rows, no embedder can turn text into such: give a vector")
    check_name(space)
    if space == LSA:
        return _lsa_vectors(texts, arrays)
    return _model_vectors(texts, space.removeprefix(MODEL_PREFIX))


def _vectoriser(terms: Sequence[str] | None, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - heavy, and only needed with --embed

    return TfidfVectorizer(vocabulary=terms, stop_words="english", sublinear_tf=True, dtype=np.float64, **options)


def _fit_lsa(texts: Sequence[str]) -> Arrays:
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - as above
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - as above

    # Terms of one text only say nothing about others, but in a small corpus there is little else.
    fitted = _vectoriser(None, max_features=_TERMS, min_df=2 if len(texts) >= _RARE_BELOW else 1)
    try:
        weights = fitted.fit_transform(texts)
    except ValueError:
        # No text has a term that counts: the space is that of unknown texts only.
        return _as_arrays([], np.zeros(0), np.zeros((0, LSA_DIMENSION), np.float32))
    terms = weights.shape[1]
    components = np.eye(terms, LSA_DIMENSION, dtype=np.float32)
    if terms > LSA_DIMENSION:
        # Fewer terms fit as they are: a full rotation would change no cosine.
        rank = min(len(texts), LSA_DIMENSION)
        # Texts that are all alike have no variance, whose shares scikit-learn would divide by.
        with threadpool_limits(limits=1), np.errstate(invalid="ignore", divide="ignore"):
            svd = TruncatedSVD(rank, algorithm="randomized", n_iter=5, random_state=0).fit(weights)
        components = np.zeros((terms, LSA_DIMENSION), np.float32)
        components[:, :rank] = svd.components_.T
    return _as_arrays(fitted.get_feature_names_out().tolist(), fitted.idf_, components)


def _as_arrays(terms: Sequence[str], idf: npt.NDArray[np.float64], components: Vectors) -> Arrays:
    vocabulary = np.frombuffer("\n".join(terms).encode(), np.uint8)
    return {"vocabulary": vocabulary, "idf": np.asarray(idf, np.float64), "components": components}


def _lsa_vectors(texts: Sequence[str], arrays: Arrays) -> Vectors:
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise DatabaseError(f"the store's space is {LSA} but it lacks the embedder's {', '.join(missing)}")
    components = arrays["components"]
    terms = bytes(arrays["vocabulary"]).decode().split("\n") if len(components) else []
    wide = np.zeros((len(texts), LSA_DIMENSION))
    if terms and len(texts):
        vectoriser = _vectoriser(terms)
        vectoriser.idf_ = arrays["idf"]
        wide = np.asarray(vectoriser.transform(texts) @ components.astype(np.float64))
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    for row in np.flatnonzero(lengths < 1e-9).tolist():
        wide[row] = _own_direction(texts[row])
        lengths[row] = np.sqrt(wide[row] @ wide[row])
    return np.asarray(wide / lengths[:, None], np.float32)


def _own_direction(text: str) -> npt.NDArray[np.float64]:
    """Return numbers that depend on the text alone and look random."""
    seed = hashlib.blake2b(text.encode(), digest_size=32).digest()
    stream = hashlib.shake_256(seed).digest(LSA_DIMENSION)
    return np.frombuffer(stream, np.uint8).astype(np.float64) - 127.5


def _model_vectors(texts: Sequence[str], name: str) -> Vectors:
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an optional package
    except ImportError:
        raise UsageError(
            f"--embed {MODEL_PREFIX}{name} needs a package that is not installed: pip install sentence-transformers"
        ) from None
    try:
        model = SentenceTransformer(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"the model {quote(name)} cannot be loaded: {error}") from error
    found = model.encode(list(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(found, np.float32)
