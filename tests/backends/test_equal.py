import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hyphae_gpu.backends.cpu import equal


def expected(known, images, rows):
    """Known images first, then new ones in order of appearance."""
    numbers = {bytes(image): number for number, image in enumerate(known)}
    return [numbers.setdefault(bytes(images[row]), len(numbers)) for row in rows]


@given(
    st.sampled_from([0, 1, 2, 7]), st.sampled_from([0, 1, 2, 11, 31, 32, 33]), st.integers(1, 9), st.integers(0, 2**32)
)
def test_rows_are_equal_by_their_bytes(known_count, count, width, seed):
    random = np.random.default_rng(seed)
    known = np.unique(random.integers(-1, 2, (known_count, width)).astype(np.int8), axis=0)
    random.shuffle(known)
    images = random.integers(-1, 2, (count + 1, width)).astype(np.int8)
    rows = random.permutation(count + 1)[:count].astype(np.int32)
    assert equal.equal_rows(known, images, rows).tolist() == expected(known, images, rows)


def test_a_hash_that_collides_never_makes_images_equal():
    """The search itself, in Python, with a hash that says the same of every row."""
    known = np.array([[1, 2], [3, 4]], np.int8)
    images = np.array([[3, 4], [5, 6], [1, 2], [5, 6], [7, 8]], np.int8)
    out, places = np.empty(5, np.int64), np.full(16, -1, np.int64)
    search = equal._equal_rows.py_func
    names = search.__globals__
    kept = {name: names[name] for name in ("_hash", "_same")}
    names |= {"_hash": lambda row: np.uint64(15), "_same": equal._same.py_func}
    try:
        search(known, images, np.arange(5, dtype=np.int32), places, out)
    finally:
        names |= kept
    assert out.tolist() == [1, 2, 0, 2, 3]
