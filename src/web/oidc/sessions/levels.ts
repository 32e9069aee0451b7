/** How a person has signed in: `acr` (authentication context class) and `amr` (methods, RFC 8176) of ID tokens. */
export const LEVELS = {
  password: { acr: '0', amr: ['pwd'] },
  /** Password and a code of the authenticator app, or a recovery code. */
  code: { acr: '2', amr: ['pwd', 'otp', 'mfa'] },
  /** A passkey, which verifies the person too. */
  passkey: { acr: '2', amr: ['pop', 'user', 'mfa'] },
} as const

export type Level = keyof typeof LEVELS

/** The class that needs two factors. */
export const TWO_FACTORS = '2'

/** Claims that the scope `openid` adds to ID tokens. */
export const OPENID_CLAIMS: string[] = ['sub', 'auth_time', 'acr', 'amr']

/** The classes that ID tokens can have. */
export const ACR_VALUES: string[] = [LEVELS.password.acr, TWO_FACTORS]
