/** Paths of OpenID Connect and of the pages around it, the same as in diaspora*. */
const FOLDER = '/api/openid_connect'

export const OIDC_PATHS = {
  discovery: '/.well-known/openid-configuration',
  registration: `${FOLDER}/clients`,
  authorization: `${FOLDER}/authorizations/new`,
  consent: `${FOLDER}/authorizations`,
  token: `${FOLDER}/access_tokens`,
  userInfo: `${FOLDER}/user_info`,
  jwks: `${FOLDER}/jwks.json`,
  revocation: `${FOLDER}/revoke`,
  applications: `${FOLDER}/user_applications`,
  signIn: '/users/sign_in',
  secondStep: '/users/sign_in/second_factor',
  passkey: '/users/sign_in/passkey',
  confirmAccess: '/users/confirm_access',
  signOut: '/users/sign_out',
  terms: '/terms',
  signUp: '/users/sign_up',
  confirmEmail: '/users/confirm_email',
  undoEmail: '/users/undo_email',
  newPassword: '/users/password/new',
  editPassword: '/users/password/edit',
} as const
