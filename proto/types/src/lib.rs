//! Ids, names, MAC, CIDR, VNI and ASN newtypes: parsed once, at the edge.
