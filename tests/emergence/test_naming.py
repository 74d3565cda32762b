"""Names of scenes: readable, telling, the same every time, and read from few texts (spec 6.4)."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from hyphae_gpu.emergence.naming import CELLS_COMPARED, CELLS_READ, name_scenes, terms_of

CARD = ["Where is my new card?", "The card hasn't arrived", "When will the card arrive? I've waited", "card delivery"]
LIMIT = ["API rate limits per minute", "The rate limit of the api is 100", "rate limits apply", "a limit on calls"]


def named(*scenes: list[str], wanted: list[int] | None = None) -> list[str]:
    scene = np.repeat(np.arange(len(scenes)), [len(texts) for texts in scenes])
    every = np.arange(len(scenes)) if wanted is None else np.array(wanted)
    return terms_of([text for texts in scenes for text in texts], scene, every, len(scenes))


def test_a_name_is_what_tells_a_scene_from_the_others() -> None:
    card, limit = named(CARD, LIMIT)
    assert card.split(", ")[0] == "card"
    assert set(limit.split(", ")[:2]) <= {"rate", "limits", "limit", "api"}
    assert "the" not in card.split(", ")
    assert not {"hasn", "ve", "t"} & set(card.split(", "))


def test_the_top_terms_are_those_of_class_based_tf_idf() -> None:
    scenes = [["alpha beta gamma", "beta gamma delta"], ["gamma delta", "delta epsilon epsilon", "alpha"], ["zeta"]]
    counts = [Counter(word for text in texts for word in set(text.split())) for texts in scenes]

    def worth(term: str, scene: int) -> float:
        holding = sum(term in count for count in counts)
        return round(counts[scene][term] * (math.log((1 + len(scenes)) / (1 + holding)) + 1), 9)

    expected = [
        ", ".join(sorted(count, key=lambda term, s=s: (-worth(term, s), term))[:4]) for s, count in enumerate(counts)
    ]
    assert named(*scenes) == expected


def test_a_long_text_does_not_speak_for_all() -> None:
    texts = ["storage driver", "storage class", "storage volume", "unrelated " * 200]
    assert named(texts, LIMIT)[0].startswith("storage")


def test_of_a_word_and_its_plural_one_stays() -> None:
    terms = named(["volume volumes", "volumes", "snapshot"], LIMIT)[0].split(", ")
    assert len([term for term in terms if term.startswith("volume")]) == 1


def test_numbers_and_endless_words_are_no_terms() -> None:
    assert named(["1234 5678", "x" * 500, "2024-01-01 ok"], LIMIT)[0] == "ok"


def test_without_words_a_name_is_empty() -> None:
    assert named(["", "12", "the"], ["of"]) == ["", ""]
    assert named(["", ""], LIMIT)[0] == ""


def test_letters_of_any_script_make_words() -> None:
    assert named(["Überweisung fehlgeschlagen", "Überweisung"], LIMIT)[0].startswith("überweisung")


class Library:
    """Texts that note who asked for them."""

    def __init__(self, scenes: list[int]) -> None:
        self.offsets = np.cumsum([0, *scenes])
        self.cells = np.arange(10, 10 + self.offsets[-1], dtype=np.int32)
        self.asked: list[int] = []

    def __call__(self, numbers: np.ndarray) -> list[str | None]:
        self.asked += numbers.tolist()
        return [None if number % 7 == 0 else f"topic{'abcd'[self._scene(number)]} common" for number in numbers]

    def _scene(self, number: int) -> int:
        return int(np.searchsorted(self.offsets, number - 10, side="right")) - 1


def test_only_wanted_scenes_are_named_and_few_texts_of_others_are_read() -> None:
    library = Library([100, 6, 300, 5])
    found = name_scenes(library.offsets, library.cells, np.array([False, True, True, False]), library)
    assert found == ["topicb, common", "topicc, common"]
    assert len(library.asked) == CELLS_COMPARED + 6 + CELLS_READ + CELLS_COMPARED
    assert library.asked == sorted(set(library.asked))


def test_where_nothing_changed_no_text_is_read() -> None:
    library = Library([100, 6])
    assert name_scenes(library.offsets, library.cells, np.zeros(2, np.bool_), library) == []
    assert library.asked == []
