"""The examples for containers: valid for Kubernetes, and words that the command takes."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from mcp_notebook.bridge.transports.http import HEALTH_PATH
from mcp_notebook.cli import main

FOLDER = Path(__file__).parents[2] / "docs" / "operate" / "containers"
DOCUMENTS = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
WORDS = json.loads(re.search(r"^ENTRYPOINT (.*)$", CONTAINERFILE, re.MULTILINE)[1])


@pytest.mark.needs("kubernetes_validate")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
@pytest.mark.parametrize("version", ["1.31", "1.35"])
def test_what_is_for_kubernetes_matches_its_schemas(document, version):
    import kubernetes_validate  # noqa: PLC0415 - of the extra `test-libraries`

    kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.needs("kubernetes_validate")
def test_a_field_that_kubernetes_does_not_know_would_be_noticed():
    import kubernetes_validate  # noqa: PLC0415 - of the extra `test-libraries`

    document = json.loads(json.dumps(DOCUMENTS[0]))
    document["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.31", strict=True)


def test_the_parts_of_the_example_fit_together():
    deployment, service = DOCUMENTS
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness")} == {
        container["readinessProbe"]["httpGet"]["path"]
    }
    assert container["readinessProbe"]["httpGet"] == {"path": HEALTH_PATH, "port": "http"}
    port = str(container["ports"][0]["containerPort"])
    assert WORDS[WORDS.index("--port") + 1] == port
    assert f"EXPOSE {port}\n" in CONTAINERFILE


def test_the_containers_command_takes_its_words():
    assert WORDS[:2] == ["mcp-notebook", "serve"]
    serve = get_command(main.app).commands["serve"].load()
    options = {name for parameter in serve.params for name in parameter.opts}
    assert {word for word in WORDS if word.startswith("--")} <= options
    serve.make_context("serve", WORDS[2:])
