"""The curl lines of the page about the server work as they stand."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.served import served

DOCUMENTED = "http://127.0.0.1:8080/v1"


def test_the_curl_lines_work(repository: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    text = (repository / "docs" / "serve.md").read_text("utf-8")
    commands = re.findall(r"^```bash\n(curl .*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(commands) >= 3
    with served("scripted:realistic", private_token="look") as server:
        for command in commands:
            words = shlex.split(command.replace("\\\n", " ").replace(DOCUMENTED, server.url))
            done = subprocess.run([*words, "--fail"], capture_output=True, text=True, timeout=20)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            answer = json.loads(done.stdout)
            assert answer.get("choices") or answer["thoughts"]
