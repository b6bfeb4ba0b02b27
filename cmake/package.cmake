# SPDX-License-Identifier: Apache-2.0
# What is installed where, and the Debian package: cmake --build build/release --target package
include(GNUInstallDirs)
set(deploy ${CMAKE_SOURCE_DIR}/deploy)
set(doc ${CMAKE_INSTALL_DATADIR}/doc/signalbox)

install(TARGETS signalbox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/docs/example/signalbox.yaml
              ${CMAKE_SOURCE_DIR}/docs/reference/settings.md ${CMAKE_SOURCE_DIR}/NOTICE
        DESTINATION ${doc})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${doc} RENAME copyright)
install(FILES ${deploy}/systemd/signalbox.service DESTINATION lib/systemd/system)
install(FILES ${deploy}/logrotate/signalbox DESTINATION /etc/logrotate.d)
install(FILES ${deploy}/signalbox.yaml DESTINATION /etc/signalbox)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME signalbox)
set(CPACK_PACKAGE_VENDOR "Signalbox")
set(CPACK_PACKAGE_CONTACT "Signalbox maintainers <noreply@signalbox.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference control plane")
set(CPACK_PACKAGE_DESCRIPTION
    "A gateway between OpenAI-style clients and LLM engines (vLLM, SGLang, TensorRT-LLM,\n\
 llama.cpp) that places each request where it is predicted to cost everybody least time.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd, ca-certificates")
file(WRITE ${CMAKE_BINARY_DIR}/conffiles
     "/etc/signalbox/signalbox.yaml\n/etc/logrotate.d/signalbox\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${deploy}/debian/postinst ${deploy}/debian/prerm ${deploy}/debian/postrm
    ${CMAKE_BINARY_DIR}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
