//! DHCP and TFTP codecs.
