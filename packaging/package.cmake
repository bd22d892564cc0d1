# The Debian package: the program, its systemd unit, an example of its settings, the documentation.
include(GNUInstallDirs)
# The package holds the program only; building it does not build the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
install(TARGETS stanchion RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES packaging/stanchion.service DESTINATION lib/systemd/system)
install(FILES packaging/stanchion.sysusers DESTINATION lib/sysusers.d RENAME stanchion.conf)
install(FILES packaging/stanchion.toml DESTINATION /etc/stanchion
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
install(FILES docs/configuration.md docs/operations.md CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/stanchion)

set(CPACK_PACKAGE_NAME stanchion)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Stanchion authors <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Amazon SQS on your own machines")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "A server that speaks the protocols of Amazon SQS, so that every AWS SDK works\nwith it by pointing it at another endpoint. Messages are on disk before they\nare acknowledged.")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/packaging/debian/conffiles ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
    ${CMAKE_SOURCE_DIR}/packaging/debian/prerm ${CMAKE_SOURCE_DIR}/packaging/debian/postrm)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
include(CPack)
