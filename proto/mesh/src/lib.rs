//! Generated types and stubs of the mesh API that agents speak.
