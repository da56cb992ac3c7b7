"""Our user behind an OpenAI-compatible endpoint: the caller's agent speaks, the user answers.

`app.make_app` builds the application, `local` runs it. Nothing here decides what a user says: that
is `users`, with the same guards as in a rollout. The rooms of this package: `wire` reads a request,
`people` finds out who is meant, `memory` keeps what clients do not send back, `answering` gets one
reply, `writing` puts it on the wire, `gate` keeps the door.
"""

from __future__ import annotations
