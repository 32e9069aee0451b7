/** A page of settings that the navigation links to. */
export interface SettingsSection {
  readonly path: string
  readonly label: string
}

export const SETTINGS_SECTIONS: readonly SettingsSection[] = [
  { path: '/settings', label: 'Overview' },
  { path: '/settings/profile', label: 'Profile' },
  { path: '/settings/sharing', label: 'Sharing' },
  { path: '/settings/blocks', label: 'Blocked people' },
  { path: '/settings/email', label: 'E-mail address' },
  { path: '/settings/mail', label: 'Mail' },
  { path: '/settings/password', label: 'Password' },
  { path: '/settings/two_factor', label: 'Second factor' },
  { path: '/settings/sessions', label: 'Browsers' },
  { path: '/settings/applications', label: 'Applications' },
  { path: '/settings/notices', label: 'Notices' },
  { path: '/settings/export', label: 'Export' },
]
