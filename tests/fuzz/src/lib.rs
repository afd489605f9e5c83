//! Fuzz targets of every decoder.
