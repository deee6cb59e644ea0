// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// Makes certificates in a folder: of an authority, of a server at 127.0.0.1, of a client, and of another authority.
func makeCertificates(in folder: TemporaryFolder) throws {
    let script = """
        set -e
        cd '\(folder.path)'
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
          -keyout ca.key -out ca.crt
        for name in server client; do
          openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name -keyout $name.key -out $name.csr
          printf 'subjectAltName=IP:127.0.0.1\\n' >$name.ext
          openssl x509 -req -in $name.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile $name.ext \
            -out $name.crt
        done
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=other \
          -keyout other.key -out other.crt
        chmod 600 *.key
        """
    let result = try run("bash", ["-c", script])
    guard result.status == 0 else { throw TestSupportError("openssl: \(result.errorOutput)") }
}

/// Writes a file that only its owner can read, and returns its path.
func secret(_ text: String, in folder: TemporaryFolder, _ name: String = "password") throws -> String {
    try folder.write(text, to: name)
    chmod("\(folder.path)/\(name)", 0o600)
    return "\(folder.path)/\(name)"
}
