"""Skills as authors write them, and sentences for those that cannot be."""

import pytest
import yaml

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.skills import MAX_FILE, make_skill_tool, read_skill

MATTER = "---\nname: rain\ndescription: About rain\n{}---\nText."


def matter_of(*lines):
    text = MATTER.format("".join(f"{line}\n" for line in lines))
    return read_skill("", text).front_matter


def test_the_first_paragraph_is_the_description_of_a_text_without_front_matter():
    file = read_skill("rain", '# Rain: a guide\n\nHow to say: it rains,\n\tor "not".\n\nMore.')
    description = 'How to say: it rains, or "not".'
    assert file.front_matter == {"name": "rain", "description": description}
    head, matter, body = file.text.split("---\n")
    assert (head, yaml.safe_load(matter)) == ("", file.front_matter)
    assert body.startswith("\n# Rain: a guide")


def test_an_own_description_wins_and_front_matter_stays_as_it_is_written():
    assert read_skill("rain", "Text.", "Mine").front_matter["description"] == "Mine"
    text = MATTER.format("# a comment\n")
    assert read_skill("rain", f"\n\n{text}\n\n").text == f"{text}\n"


def test_front_matter_is_read_by_the_rules_of_yaml_1_2():
    assert matter_of(
        "a: yes", "b: 2026-01-02", "c: 010", "d: 1e2", "e: true", "f: ~", "g: 1.50"
    ) == {
        "name": "rain",
        "description": "About rain",
        "a": "yes",
        "b": "2026-01-02",
        "c": 10,
        "d": 100.0,
        "e": True,
        "f": None,
        "g": 1.5,
    }


def test_a_path_behind_the_name_is_a_further_file():
    file = read_skill("rain/scripts/draw.py", "print()")
    tool = make_skill_tool(file, ("team",))
    assert (tool.name, tool.info.uri) == ("rain/scripts/draw.py", "skill://rain/scripts/draw.py")
    assert (tool.info.text, tool.info.mime_type) == ("print()\n", "text/x-python")
    assert tool.info.annotations == {"readOnlyHint": True}
    assert tool.function() == "print()\n"
    assert read_skill("rain/SKILL.md", "Text.").path == "SKILL.md"
    assert read_skill("rain/data", "x").mime_type == "text/plain"


@pytest.mark.parametrize(
    ("word", "text", "said"),
    [
        ("", "Text.", "needs a name. Begin the cell with `%%mcp_skill NAME`"),
        ("Weekly Report", "Text.", "single hyphens, as in 'weekly-report'"),
        ("a--b", "Text.", "as in 'a-b'"),
        ("--", "Text.", "Begin the cell with"),
        ("x" * 65, "Text.", "1 to 64 lowercase letters"),
        ("rain", " \n", "is empty"),
        ("rain", "# Only a heading", "needs a description"),
        ("rain", "x" * (MAX_FILE + 1), "more than 262,144"),
        ("rain/../x", "Text.", "cannot be a file of a skill"),
        ("rain//x", "Text.", "cannot be a file of a skill"),
        ("rain/.x", "Text.", "cannot be a file of a skill"),
        ("rain/a/SKILL.md", "Text.", "cannot be a file of a skill"),
        ("rain/a/b/c/d/e/f", "Text.", "cannot be a file of a skill"),
        ("snow", MATTER.format(""), "names the skill 'snow', and its front matter 'rain'"),
        ("rain", "---\ndescription: x\n---\n", "needs a `name`"),
        ("", "---\nname: 1\ndescription: x\n---\n", "needs a `name`"),
        ("", "---\nname: rain\n---\n", "needs a `description`"),
        ("", f"---\nname: rain\ndescription: {'x' * 1025}\n---\n", "1,025 characters, more than"),
        ("", "---\nname: rain\ndescription: a: b\n---\n", "not valid YAML in line 3"),
        ("", "---\nname: &n rain\ndescription: *n\n---\n", "aliases are not supported"),
        ("", "---\n- rain\n---\n", "must be lines like"),
        ("", "---\n1: 2\n---\n", "what JSON can"),
        ("", "---\nname: !!python/name:os.system\n---\n", "not valid YAML"),
        ("", "---\nname: rain\ndescription: x\nd: .inf\ne: !!set {a}\n---\n", "what JSON can"),
        ("", "---\nname: \x07\n---\n", "not valid YAML"),
    ],
)
def test_what_cannot_be_a_skill_gets_a_sentence(word, text, said):
    with pytest.raises(DefinitionError) as refused:
        read_skill(word, text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("word", "text", "said"),
    [
        ("rain/a.md", "Text.", "`--description` belongs to the skill itself"),
        ("rain", MATTER.format(""), "both describe the skill"),
    ],
)
def test_a_description_is_given_in_one_place(word, text, said):
    with pytest.raises(DefinitionError, match=said):
        read_skill(word, text, "Mine")
