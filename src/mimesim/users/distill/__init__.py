"""From chats that happened to scenarios: what each person wanted, knew, held back and wrote like."""
