# SPDX-License-Identifier: Apache-2.0
# cmake --install: headers, both libraries, and what CMake and pkg-config need to find them. The
# prefix may be moved afterwards.
option(MOEPERM_INSTALL "Install the library" ${PROJECT_IS_TOP_LEVEL})
if(NOT MOEPERM_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/moeperm)

if(TARGET moeperm-cli)
  add_dependencies(moeperm-installed moeperm-cli)
endif()

# Two export sets: the shared library asks nothing of its users, the static one Highway and oneTBB.
foreach(target moeperm moeperm_static)
  add_dependencies(moeperm-installed ${target})
  install(TARGETS ${target} EXPORT ${target}-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${target}-targets NAMESPACE moeperm:: DESTINATION ${package_dir})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/moeperm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/moeperm-config.cmake.in
  ${PROJECT_BINARY_DIR}/moeperm-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break programs.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/moeperm-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/moeperm-config.cmake
  ${PROJECT_BINARY_DIR}/moeperm-config-version.cmake DESTINATION ${package_dir})

# The paths in moeperm.pc start from the place of the file.
file(RELATIVE_PATH MOEPERM_PC_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" MOEPERM_PC_PREFIX ${MOEPERM_PC_PREFIX})
file(RELATIVE_PATH MOEPERM_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH MOEPERM_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/moeperm.pc.in ${PROJECT_BINARY_DIR}/moeperm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/moeperm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
