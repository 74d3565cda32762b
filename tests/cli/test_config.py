"""Settings: the order of the layers, where each value came from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hyphae_gpu.config import Settings, available_cores, effective, fail_point, masked, variable
from hyphae_gpu.errors import UsageError

#: Every rule of this step with the default that the spec gives it.
SPEC_DEFAULTS = {
    "sigma_min": 0.30,
    "cos_min": 0.25,
    "fanout": 10,
    "max_hops": 64,
    "loss": 0.0,
    "seed": 0,
    "anti_entropy_every": 1,
    "ttl_epochs": 3,
    "decay_per_day": 0.99,
    "salience_threshold": 0.05,
    "access_unit_days": 1.0,
    "beacon_fanin": 32,
    "beacon_radius": 0.3,
    "audience_limit": None,
    "inbox_limit": 50,
    "beacon_limit": 50,
    "resolution": "2/1",
    "confirm_by": "delivery",
    "pattern_eps": 0.80,
    "summariser": None,
    "theta_sim": 0.80,
    "policy": "flag",
    "verifier": None,
}
OUT_OF_RANGE = [
    ("sigma_min", 1.01),
    ("sigma_min", float("nan")),
    ("cos_min", -1.01),
    ("fanout", -1),
    ("fanout", 2**31),
    ("theta_sim", 1.01),
    ("pattern_eps", 1.01),
    ("pattern_eps", float("nan")),
    ("confirm_by", "people"),
    ("summariser", "a_module_alone"),
    ("resolution", "0"),
    ("resolution", "1/0"),
    ("resolution", "-2/1"),
    ("resolution", "20001/2"),
    ("resolution", "1e99999999"),
    ("resolution", "two"),
    ("policy", "majority"),
    ("verifier", "a_module_alone"),
    ("max_hops", -1),
    ("loss", 1.0),
    ("loss", -0.01),
    ("seed", -1),
    ("seed", 2**64),
    ("ttl_epochs", 0),
    ("decay_per_day", 0.0),
    ("decay_per_day", 1.01),
    ("salience_threshold", 1.5),
    ("access_unit_days", 0.0),
    ("access_unit_days", float("inf")),
    ("beacon_fanin", 0),
    ("audience_limit", 0),
    ("inbox_limit", 0),
    ("beacon_limit", 0),
    ("threads", 0),
    ("batch_size", 0),
    ("device", "tpu"),
    ("project", "Upper"),
    ("project", "a-b"),
    ("project", "a" * 41),
    ("project", ""),
    ("project", "a\n"),
]


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_rules_have_the_names_and_defaults_of_the_spec():
    assert Settings().rules() == SPEC_DEFAULTS


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_value_out_of_its_range_is_refused_by_name(name, value):
    with pytest.raises(UsageError, match=rf"^{name} = .* \(flag --{name.replace('_', '-')}\): "):
        effective({name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("loss", 0.999), ("decay_per_day", 1.0), ("seed", 2**64 - 1), ("fanout", 0)]
)
def test_the_ends_of_ranges_are_allowed(name, value):
    assert getattr(effective({name: value}).settings, name) == value


def test_flag_beats_environment_beats_file_beats_default(tmp_path, monkeypatch):
    Path("hyphae.toml").write_text("fanout = 1\nseed = 1\nloss = 0.5\n")
    monkeypatch.setenv("HYPHAE_FANOUT", "2")
    monkeypatch.setenv("HYPHAE_SEED", "2")
    found = effective({"fanout": 3, "seed": None})
    assert (found.settings.fanout, found.settings.seed, found.settings.loss) == (3, 2, 0.5)
    sources = [found.sources[name] for name in ("fanout", "seed", "loss", "ttl_epochs")]
    assert sources == ["flag --fanout", "environment HYPHAE_SEED", "hyphae.toml", "default"]


def test_a_named_file_is_read_instead_of_the_one_in_the_working_directory(tmp_path):
    Path("hyphae.toml").write_text("fanout = 1\nseed = 9\n")
    named = tmp_path / "other.toml"
    named.write_text("fanout = 2\n")
    found = effective(config=named)
    assert (found.settings.fanout, found.settings.seed) == (2, 0)
    assert found.sources["fanout"] == str(named)


def test_the_store_comes_from_database_url_and_from_no_other_variable(monkeypatch):
    monkeypatch.setenv("HYPHAE_DATABASE_URL", "postgresql://elsewhere/x")
    assert effective().settings.database_url is None
    assert effective().ignored == ("HYPHAE_DATABASE_URL",)
    monkeypatch.setenv("DATABASE_URL", "postgresql://here/x")
    found = effective()
    assert found.settings.database_url == "postgresql://here/x"
    assert found.sources["database_url"] == "environment DATABASE_URL"


def test_every_setting_can_be_set_by_its_variable(monkeypatch):
    values = {
        **{name: str(value or 1) for name, value in SPEC_DEFAULTS.items()},
        "loss": "0",
        "verifier": "some.module:judge",
        "summariser": "some.module:summarise",
        "project": "p",
        "data_dir": "d",
        "database_url": "postgresql://h/d",
        "embed": "lsa",
        "device": "cpu",
        "threads": "1",
        "batch_size": "7",
    }
    assert set(values) == set(Settings.model_fields)
    for name, value in values.items():
        monkeypatch.setenv(variable(name), value)
    assert set(effective().sources.values()) == {f"environment {variable(name)}" for name in values}


def test_an_empty_variable_is_no_value(monkeypatch):
    monkeypatch.setenv("HYPHAE_FANOUT", "")
    monkeypatch.setenv("DATABASE_URL", "")
    assert effective().settings == Settings()


def test_variables_that_are_no_settings_are_named(monkeypatch):
    for name in ("HYPHAE_SIGMA", "HYPHAE_FAIL_POINT", "HYPHAE_REQUIRE_GPU", "HYPHAE_TEST_X"):
        monkeypatch.setenv(name, "1")
    assert effective().ignored == ("HYPHAE_SIGMA",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fan_out = 3\nsigma = 1\n", "no such setting: fan_out, sigma. Known: sigma_min, "),
        ("[rules]\nfanout = 3\n", "no such setting: rules"),
        ("fanout = \n", "not valid TOML: .*line 1"),
        ("fanout = true\n", r"fanout = True \(hyphae.toml\): expected a value, not true or false"),
        ('fanout = "many"\n', r"fanout = 'many' \(hyphae.toml\): "),
        ("fanout = 1.5\n", r"fanout = 1.5 \(hyphae.toml\): "),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_reason(text, reason):
    Path("hyphae.toml").write_text(text)
    with pytest.raises(UsageError, match=reason) as refused:
        effective()
    assert "hyphae.toml" in str(refused.value)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.toml: cannot be read \(No such file"):
        effective(config=Path("nowhere.toml"))
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory"):
        effective(config=tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        effective(config=tmp_path / "bytes.toml")


def test_settings_themselves_read_nothing_and_cannot_be_changed(monkeypatch):
    monkeypatch.setenv("HYPHAE_FANOUT", "2")
    Path("hyphae.toml").write_text("fanout = 1\n")
    assert Settings().fanout == 10
    with pytest.raises(ValidationError):
        Settings(fan_out=3)
    with pytest.raises(ValidationError, match="frozen"):
        Settings().fanout = 3


def test_threads_are_the_cores_at_hand():
    assert effective().settings.threads == available_cores() >= 1


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:s@e/c:ret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("postgresql://h/db?user=u&password=secret", "postgresql://h/db?user=u&password=***"),
        ("postgresql://h/db?password=secret&user=u", "postgresql://h/db?password=***&user=u"),
        ("host=h password=secret dbname=d", "host=h password=*** dbname=d"),
        (r"host=h password = 'se\'c ret' dbname=d", "host=h password = *** dbname=d"),
    ],
)
def test_passwords_are_masked(url, safe):
    assert masked(url) == safe
    shown = {name: value for name, value, _ in effective({"database_url": url}).rows()}
    assert shown["database_url"] == safe
    assert "secret" not in repr(Settings(database_url=url))


def test_a_refused_layer_tells_no_password(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@h/db")
    with pytest.raises(UsageError) as refused:
        effective({"fanout": -1})
    assert "secret" not in str(refused.value)


def test_the_fail_point_is_read_from_the_environment(monkeypatch):
    assert fail_point() is None
    monkeypatch.setenv("HYPHAE_FAIL_POINT", "commit")
    assert fail_point() == "commit"


@pytest.mark.parametrize(
    ("given", "ratio"), [("2/1", (2, 1)), (2, (2, 1)), ("4/2", (2, 1)), (0.5, (1, 2)), ("10000/7", (10_000, 7))]
)
def test_a_resolution_is_taken_as_a_ratio_in_lowest_terms(given, ratio):
    taken = Settings(resolution=given)
    assert taken.resolution_ratio == ratio
    assert taken.rules()["resolution"] == f"{ratio[0]}/{ratio[1]}"
