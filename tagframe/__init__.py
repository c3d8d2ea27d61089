"""tagframe."""
