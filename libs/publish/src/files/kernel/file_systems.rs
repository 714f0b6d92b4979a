//! Which file systems tell all changes: on those of a network, other machines write unheard.

use std::os::fd::BorrowedFd;

/// Numbers of file systems on which others may write: of a network, of a cluster, of the host of a virtual machine, and
/// of programs (FUSE), of which many are one of these.
const SHARED: &[u32] = &[
    0x0000_517b, // smb
    0x0000_564c, // ncp
    0x0000_6969, // nfs
    0x00c3_6400, // ceph
    0x0102_1997, // 9p
    0x0116_1970, // gfs2
    0x0bd0_0bd0, // lustre
    0x1983_0326, // beegfs
    0x4750_4653, // gpfs
    0x5346_414f, // afs
    0x6573_5546, // fuse
    0x6b41_4653, // kafs
    0x7375_7245, // coda
    0x7461_636f, // ocfs2
    0x786f_4256, // vboxsf
    0xbacb_acbc, // vmhgfs
    0xfe53_4d42, // smb2
    0xff53_4d42, // cifs
];

/// Whether all changes of a folder are told, also those that other machines make.
pub(super) fn tells_all(folder: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let found = rustix::fs::fstatfs(folder)?;
    // The number has 32 bits; its type is wider on some machines.
    let number = found.f_type as u32;
    Ok(SHARED.binary_search(&number).is_err())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn numbers_are_sorted_and_a_local_file_system_tells_all() {
        assert!(SHARED.is_sorted());
        let folder = tempfile::tempdir().unwrap();
        let folder = std::fs::File::open(folder.path()).unwrap();
        assert_eq!(tells_all(folder.as_fd()), Ok(true));
    }
}
