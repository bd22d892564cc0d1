# The Debian package: the program, its systemd unit, an example of its settings, the documentation,
# the manual page and the completions of shells.
include(GNUInstallDirs)
# The package holds the program only; building it does not build the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
install(TARGETS stanchion RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES packaging/stanchion.service DESTINATION lib/systemd/system)
install(FILES packaging/stanchion.sysusers DESTINATION lib/sysusers.d RENAME stanchion.conf)
install(FILES packaging/stanchion.toml DESTINATION /etc/stanchion
        PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
install(FILES docs/configuration.md docs/operations.md docs/compatibility.md CHANGELOG.md
              packaging/debian/copyright
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/stanchion)

# What the program says of itself, from the program that is installed.
set(said ${CMAKE_BINARY_DIR}/said)
install(CODE "
  file(MAKE_DIRECTORY ${said})
  function(ask file)
    execute_process(COMMAND $<TARGET_FILE:stanchion> \${ARGN} OUTPUT_FILE ${said}/\${file}
                    COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  ask(stanchion.1 help --man)
  ask(stanchion.bash completion bash)
  ask(_stanchion completion zsh)
  ask(stanchion.fish completion fish)
  # Without name and time, so that the same sources make the same package.
  execute_process(COMMAND gzip --force --best --no-name ${said}/stanchion.1
                  COMMAND_ERROR_IS_FATAL ANY)")
install(FILES ${said}/stanchion.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${said}/stanchion.bash RENAME stanchion
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)
install(FILES ${said}/_stanchion DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions)
install(FILES ${said}/stanchion.fish
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)

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
