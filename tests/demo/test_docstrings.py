"""Docstrings of every style are cut where a reader would cut them."""

from __future__ import annotations

from hyphae_gpu.demo.docstrings import Section, sections

NUMPYDOC = """
    solve(a, b)

    Solve a linear matrix equation.

    Computes the "exact" solution.

    .. deprecated:: 1.4
        Use `lstsq` instead.

    Parameters
    ----------
    a : (..., M, M) array_like
        Coefficients.
    mode : str, optional
        How.

        .. versionchanged:: 2.0
            The default is 'full' now.

    Raises
    ------
    LinAlgError
        If `a` is singular.

    Notes
    -----
    LAPACK does it.

    .. warning:: It overwrites its input.

    See Also
    --------
    scipy.linalg.solve : Similar function in SciPy.
    """

GOOGLE = """Computes the QR decomposition.

    It is thin by default.

    .. note:: Uses LAPACK on CPU
        and MAGMA on CUDA.

    Args:
        input (Tensor): the matrix
        some (bool): thin or not

    Raises:
        RuntimeError: if it is empty.

    Example::

        >>> qr(a)

    That is all there is.
    """


def by_name(found: list[Section], name: str) -> list[Section]:
    return [section for section in found if section.name == name]


def test_numpydoc_sections_are_found_under_their_headings() -> None:
    found = sections(NUMPYDOC)
    assert by_name(found, "raises")[0].lines == ("LinAlgError", "    If `a` is singular.")
    assert by_name(found, "notes")[0].lines == ("LAPACK does it.",)
    assert by_name(found, "see also")[0].lines == ("scipy.linalg.solve : Similar function in SciPy.",)
    assert [section.name for section in found] == [
        *("summary", "deprecated", "parameters", "changed", "raises", "notes", "warnings", "see also")
    ]


def test_a_call_signature_before_the_summary_is_left_out() -> None:
    assert sections(NUMPYDOC)[0].lines[0] == "Solve a linear matrix equation."
    assert sections("f(x)\n\nf(x, y)\n\nAdds.")[0].lines == ("Adds.",)


def test_a_docstring_that_is_only_a_signature_says_nothing() -> None:
    assert sections("fork(*args, **kwargs) -> torch._C.Future\n") == []


def test_a_directive_in_the_summary_speaks_of_the_whole_object() -> None:
    (deprecated,) = by_name(sections(NUMPYDOC), "deprecated")
    assert (deprecated.version, deprecated.whole, deprecated.lines) == ("1.4", True, ("Use `lstsq` instead.",))


def test_a_directive_under_a_parameter_names_it_and_does_not_speak_of_the_whole() -> None:
    (changed,) = by_name(sections(NUMPYDOC), "changed")
    assert (changed.version, changed.parameter, changed.whole) == ("2.0", "mode", False)


def test_google_sections_end_where_the_margin_is_reached_again() -> None:
    found = sections(GOOGLE)
    assert by_name(found, "raises")[0].lines == ("RuntimeError: if it is empty.",)
    assert [section.lines for section in by_name(found, "summary")] == [
        ("Computes the QR decomposition.", "", "It is thin by default."),
        ("That is all there is.",),
    ]


def test_the_argument_of_a_note_is_its_first_line() -> None:
    (note,) = by_name(sections(GOOGLE), "notes")
    assert note.lines == ("Uses LAPACK on CPU", "and MAGMA on CUDA.")


def test_directives_that_are_no_sections_go_with_their_bodies() -> None:
    found = sections("Adds.\n\n.. math::\n\n    a + b\n\n.. plot::\n   :include-source:\n\n   plot(a)\n\nReally.")
    assert [section.name for section in found] == ["summary"]
    assert " ".join(" ".join(found[0].lines).split()) == "Adds. Really."


def test_a_warning_inside_a_note_is_a_section_too() -> None:
    found = sections("Adds.\n\n.. note::\n    Fine.\n\n    .. warning::\n        Not fine.\n")
    assert [(section.name, section.lines) for section in found[1:]] == [
        ("notes", ("Fine.",)),
        ("warnings", ("Not fine.",)),
    ]


def test_unknown_headings_close_the_section_before() -> None:
    found = sections("Adds.\n\nNotes\n-----\nA.\n\nRules of the house\n------------------\nB.")
    assert [section.name for section in found] == ["summary", "notes", "rules of the house"]


def test_rows_of_dashes_in_tables_and_text_open_no_section() -> None:
    assert [s.name for s in sections("Adds.\n\n===== =====\nkey   value\n===== =====\n1     2\n===== =====")] == [
        "summary"
    ]
    assert [section.name for section in sections("Adds.\n1 2 3\n-----\n")] == ["summary"]


def test_nothing_comes_of_nothing() -> None:
    for empty in (None, "", "   \n\t\n"):
        assert sections(empty) == []


def test_odd_endings_are_read_without_an_error() -> None:
    for odd in (
        "Notes\n-----",
        "Args:",
        ".. warning::",
        ".. deprecated:: 1.0",
        "-----",
        "x\n.. ::",
        "Raises:\n\n",
        "a\x00b",
    ):
        assert isinstance(sections(odd), list)
