"""Which line allocated: Python, native and device windows."""
