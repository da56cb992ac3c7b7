"""What several tests share: a real HTTP server that plays an OpenAI-compatible endpoint."""
