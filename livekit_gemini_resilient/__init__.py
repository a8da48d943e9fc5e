"""A drop-in Gemini Live realtime model for LiveKit Agents."""
