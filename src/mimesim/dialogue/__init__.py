"""The vocabulary of conversations: types, think-splitting, stop reasons, views, exports."""
