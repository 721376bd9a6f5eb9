"""``mcp-notebook list --skills``: folders that assistants read from disk."""

import pytest
from live import kernel_env, live_kernel
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.cli.skills import write_files
from mcp_notebook.errors import SkillError

CELLS = (
    "%load_ext mcp_notebook",
    "%%mcp_skill weekly-report\nUse this for a week.",
    "%%mcp_skill weekly-report/references/limits.md\nHeavy rain is 50 mm.",
)


@pytest.fixture(scope="module")
def kernel(module_home):
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        for cell in CELLS:
            kernel.ok(cell)
        yield kernel


@pytest.fixture
def run(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(folder, *arguments, code=0):
        words = ["list", "--skills", folder, *arguments]
        answer = CliRunner().invoke(main.app, words, env=kernel_env(kernel.home))
        assert answer.exit_code == code, answer.output
        return answer

    return run


@pytest.mark.smoke
def test_skills_are_written_where_assistants_read_them_and_only_once(run, tmp_path):
    said = run(".claude/skills").stdout.splitlines()
    assert said == [
        ".claude/skills/weekly-report/SKILL.md",
        ".claude/skills/weekly-report/references/limits.md",
    ]
    text = (tmp_path / said[0]).read_text("utf-8")
    assert text.startswith('---\nname: weekly-report\ndescription: "Use this for a week."\n---\n')
    assert run(".claude/skills").stdout == ""
    assert run(".agents/skills", "--notebook", "sales").stdout.count("\n") == 2


def test_files_that_differ_are_only_overwritten_by_force(run, tmp_path):
    file = tmp_path / "skills" / "weekly-report" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    said = str(run("skills", code=1).exception)
    assert "differ from the notebook's: skills/weekly-report/SKILL.md. Move" in said
    assert "`--force`" in said
    assert [file.name for file in file.parent.iterdir()] == ["SKILL.md"]
    run("skills", "--force")
    assert "Use this for a week." in file.read_text("utf-8")


def test_nothing_is_written_through_a_link_or_out_of_the_folder(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "skills"
    folder.mkdir()
    (folder / "rain").symlink_to(outside)
    with pytest.raises(SkillError, match="is a symbolic link"):
        write_files(folder, {"rain/SKILL.md": "x"}, force=True)
    assert list(outside.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "skills").write_text("a file")
    with pytest.raises(SkillError, match=r"skills.* cannot be written"):
        write_files(tmp_path / "skills", {"rain/SKILL.md": "x"}, force=False)
