const PAGE = '/settings/import'

/** The script that uploads files in parts. Pages with it need a policy with `mayConnect`. */
export const IMPORT_SCRIPT = '/assets/import.js'

export const IMPORT_PATHS = {
  page: PAGE,
  upload: `${PAGE}/upload`,
  parts: `${PAGE}/parts`,
  check: `${PAGE}/check`,
  drop: `${PAGE}/drop`,
  start: `${PAGE}/start`,
  pause: `${PAGE}/pause`,
  resume: `${PAGE}/resume`,
  cancel: `${PAGE}/cancel`,
  shareAgain: `${PAGE}/share_again`,
} as const
