"""Memory of accelerators: the allocator of the framework, and the driver."""
