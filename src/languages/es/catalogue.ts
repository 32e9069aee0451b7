import type { Catalogue } from '../translate.js'
import { ACCOUNTS } from './accounts.js'
import { IMPORTS } from './imports.js'
import { MAILS } from './mails.js'
import { PAGES } from './pages.js'
import { SETTINGS } from './settings.js'
import { COMMON } from './shared-messages.js'

export const SPANISH = {
  ...COMMON,
  ...ACCOUNTS,
  ...SETTINGS,
  ...PAGES,
  ...IMPORTS,
  ...MAILS,
} as const satisfies Catalogue
