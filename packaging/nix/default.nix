# SPDX-License-Identifier: Apache-2.0
#
# Untested: nix-instantiate parses this file ('make specs'), but it has not been built. nixpkgs' Swift must be 6.2 or
# newer. Nothing is fetched during the build. To try it: nix-build packaging/nix
{
  pkgs ? import <nixpkgs> { },
}:

pkgs.swiftPackages.stdenv.mkDerivation {
  pname = "notifybus";
  version = "1.0.0-beta.1";
  src = pkgs.lib.cleanSource ../..;

  nativeBuildInputs = with pkgs; [
    pkg-config
    swift
    swiftpm
  ];
  buildInputs = with pkgs; [
    dbus
    xorg.libxcb
  ];

  postPatch = "patchShebangs Scripts";
  buildPhase = ''
    runHook preBuild
    export HOME=$TMPDIR
    make build LIBRARIES=shared INSTALL_MISSING=no
    runHook postBuild
  '';
  # The bus and systemd search the profile, not /usr.
  installPhase = ''
    runHook preInstall
    make install PREFIX=$out MANIFEST= DBUSDIR=$out/share/dbus-1 SYSTEMDUSERUNITDIR=$out/lib/systemd/user \
      SYSTEMDSYSTEMUNITDIR=$out/lib/systemd/system AUTOSTARTDIR=$out/etc/xdg/autostart
    runHook postInstall
  '';

  meta = {
    description = "Darwin-style notifications over D-Bus";
    license = pkgs.lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
    mainProgram = "notify-wait";
  };
}
