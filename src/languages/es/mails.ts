export const MAILS = {
  'mail.confirm_sign_up.subject': 'Confirma tu dirección de correo para {pod}',
  'mail.confirm_sign_up.text':
    'Alguien, probablemente tú, quiere abrir la cuenta {account} en {pod} con esta dirección de correo.\n\nPara confirmar la dirección, abre esta página en los próximos 3 días y pulsa su botón. Si no has sido tú, no tienes que hacer nada.',
  'mail.confirm_sign_up.action': 'Confirmar la dirección',
  'mail.already_registered.subject': 'Ya tienes una cuenta en {pod}',
  'mail.already_registered.text':
    'Alguien, probablemente tú, ha querido abrir una cuenta en {pod} con esta dirección de correo. Ya existe una cuenta con ella: inicia sesión con su nombre o con esta dirección.\n\nSi no has sido tú, no tienes que hacer nada.',
  'mail.sign_up_approved.subject': 'Tu cuenta en {pod} está abierta',
  'mail.sign_up_approved.text': 'La cuenta {account} está abierta. Ya puedes iniciar sesión.',
  'mail.sign_up_rejected.subject': 'Tu registro en {pod}',
  'mail.sign_up_rejected.text': 'La moderación de {pod} no ha aceptado tu registro. Tus datos se han eliminado.',
  'mail.password_reset.subject': 'Restablece tu contraseña para {pod}',
  'mail.password_reset.text':
    'Se ha pedido una contraseña nueva para {account}, probablemente lo has hecho tú.\n\nPara establecer una, abre esta página en las próximas 2 horas. Si no has sido tú, no tienes que hacer nada.',
  'mail.password_reset.action': 'Establecer una contraseña nueva',
  'mail.password_changed.subject': 'La contraseña de tu cuenta en {pod} ha cambiado',
  'mail.password_changed.text':
    'Se ha cambiado la contraseña de {account}.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.confirm_email.subject': 'Confirma tu dirección de correo nueva para {pod}',
  'mail.confirm_email.text':
    'Esta será la dirección de correo de {account} en {pod}.\n\nPara confirmarla, abre esta página en el plazo de un día y pulsa su botón. Si no has sido tú, no tienes que hacer nada.',
  'mail.confirm_email.action': 'Confirmar la dirección',
  'mail.email_changing.subject': 'La dirección de correo de tu cuenta en {pod} va a cambiar',
  'mail.email_changing.text':
    'La dirección de correo de {account} se está cambiando de esta a {address}.\n\nSi no has sido tú, abre esta página en los próximos 3 días: se restablece esta dirección, terminan todas las sesiones y estableces una contraseña nueva.',
  'mail.email_changing.action': 'Deshacer el cambio',
  'mail.new_sign_in.subject': 'Inicio de sesión nuevo en {pod}',
  'mail.new_sign_in.text':
    'Alguien ha iniciado sesión como {account} con un navegador que no se había usado antes.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.second_factor_on.subject': 'El segundo factor está activado para {pod}',
  'mail.second_factor_on.text':
    'A partir de ahora, iniciar sesión como {account} exige un código.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.second_factor_off.subject': 'El segundo factor está desactivado para {pod}',
  'mail.second_factor_off.text':
    'Iniciar sesión como {account} ya no exige ningún código.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.recovery_codes_new.subject': 'Códigos de recuperación nuevos para {pod}',
  'mail.recovery_codes_new.text':
    'Se han creado códigos de recuperación nuevos para {account}. Los anteriores ya no son válidos.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.recovery_code_used.subject': 'Se ha usado un código de recuperación en {pod}',
  'mail.recovery_code_used.text':
    'Se ha usado un código de recuperación de {account} para iniciar sesión. Códigos de recuperación que quedan: {count, number}.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.passkey_added.subject': 'Se ha añadido una llave de acceso en {pod}',
  'mail.passkey_added.text':
    'Una llave de acceso nueva permite iniciar sesión como {account}.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.passkey_removed.subject': 'Se ha quitado una llave de acceso en {pod}',
  'mail.passkey_removed.text':
    'Se ha quitado una llave de acceso de {account}.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.passkey_refused.subject': 'Se ha rechazado una llave de acceso en {pod}',
  'mail.passkey_refused.text':
    'Se ha rechazado una llave de acceso de {account} porque puede haber sido copiada. Quítala en los ajustes.',
  'mail.sign_ups_unattended.subject': 'Los registros en {pod} necesitan ahora una decisión',
  'mail.sign_ups_unattended.text':
    'Nadie de la moderación de {pod} ha estado activo durante un tiempo. Desde ahora cada registro sin invitación espera una decisión, hasta que un administrador lo termine.',
  'mail.sign_ups_unattended.action': 'Abrir los registros',
  'mail.moderation_notice.subject': 'Un comunicado de la moderación de {pod}',
  'mail.moderation_notice.text':
    'La moderación de {pod} tiene un comunicado para {account}. Inicia sesión para leerlo.',
  'mail.moderation_notice.action': 'Leer el comunicado',
  'mail.account_closing.subject': 'Tu cuenta en {pod} se va a cerrar',
  'mail.account_closing.text':
    'La cuenta {account} se cerrará definitivamente el {day}. Hasta entonces no se elimina nada: para conservar la cuenta, inicia sesión.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.account_closing.action': 'Conservar la cuenta',
  'mail.account_unused.subject': 'Tu cuenta en {pod} se cerrará pronto',
  'mail.account_unused.text':
    'La cuenta {account} no se usa desde hace mucho tiempo. Si no se usa hasta el {day}, se cerrará.\n\nInicia sesión o usa una aplicación para conservarla.',
  'mail.account_unused.action': 'Iniciar sesión',
  'mail.account_unused_closing.subject': 'Tu cuenta en {pod} se va a cerrar',
  'mail.account_unused_closing.text':
    'Hace mucho tiempo que nadie usa la cuenta {account}, así que se cerrará definitivamente el {day}. Hasta entonces no se elimina nada.\n\nPara conservar la cuenta, inicia sesión antes.',
  'mail.account_unused_closing.action': 'Conservar la cuenta',
  'mail.account_moved.subject': 'Tu cuenta en {pod} se ha mudado',
  'mail.account_moved.text':
    'La cuenta {account} se ha mudado a {address}, con sus publicaciones, contactos y mensajes. Aquí ya no se puede usar.\n\nSi no has sido tú, alguien tiene una exportación de tu cuenta. Pregunta a los responsables del pod y avisa a tus contactos: una mudanza no se puede deshacer.',
  'mail.archive_ready.subject': 'Tu exportación de {pod} está lista',
  'mail.archive_ready.text':
    'La exportación de {account} está lista. Se conserva 14 días.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.archive_ready.action': 'Descargarla',
  'mail.archive_downloaded.subject': 'Se ha descargado una exportación de tu cuenta en {pod}',
  'mail.archive_downloaded.text':
    'Se ha descargado una exportación de {account}. Quien tenga el archivo puede leer lo que contiene.\n\nSi no has sido tú, restablece tu contraseña y termina todas las sesiones en los ajustes, o pregunta a los responsables del pod.',
  'mail.notice.mentioned':
    '{others, plural, =0 {{name} te ha mencionado en una publicación} one {{name} y otra persona te han mencionado en una publicación} many {{name} y # personas más te han mencionado en una publicación} other {{name} y # personas más te han mencionado en una publicación}}',
  'mail.notice.mentioned_in_comment':
    '{others, plural, =0 {{name} te ha mencionado en un comentario} one {{name} y otra persona te han mencionado en un comentario} many {{name} y # personas más te han mencionado en un comentario} other {{name} y # personas más te han mencionado en un comentario}}',
  'mail.notice.started_sharing':
    '{others, plural, =0 {{name} ha empezado a compartir contigo} one {{name} y otra persona han empezado a compartir contigo} many {{name} y # personas más han empezado a compartir contigo} other {{name} y # personas más han empezado a compartir contigo}}',
  'mail.notice.private_message':
    '{others, plural, =0 {{name} te ha enviado un mensaje} one {{name} y otra persona te han enviado un mensaje} many {{name} y # personas más te han enviado un mensaje} other {{name} y # personas más te han enviado un mensaje}}',
  'mail.notice.comment_on_post':
    '{others, plural, =0 {{name} ha comentado tu publicación} one {{name} y otra persona han comentado tu publicación} many {{name} y # personas más han comentado tu publicación} other {{name} y # personas más han comentado tu publicación}}',
  'mail.notice.also_commented':
    '{others, plural, =0 {{name} ha comentado una publicación que has comentado} one {{name} y otra persona han comentado una publicación que has comentado} many {{name} y # personas más han comentado una publicación que has comentado} other {{name} y # personas más han comentado una publicación que has comentado}}',
  'mail.notice.reshared':
    '{others, plural, =0 {{name} ha compartido tu publicación} one {{name} y otra persona han compartido tu publicación} many {{name} y # personas más han compartido tu publicación} other {{name} y # personas más han compartido tu publicación}}',
  'mail.notice.contacts_birthday':
    '{others, plural, =0 {{name} cumple años} one {{name} y otra persona cumplen años} many {{name} y # personas más cumplen años} other {{name} y # personas más cumplen años}}',
  'mail.notice.liked':
    '{others, plural, =0 {A {name} le gusta tu publicación} one {A {name} y a otra persona les gusta tu publicación} many {A {name} y a # personas más les gusta tu publicación} other {A {name} y a # personas más les gusta tu publicación}}',
  'mail.notice.liked_comment':
    '{others, plural, =0 {A {name} le gusta tu comentario} one {A {name} y a otra persona les gusta tu comentario} many {A {name} y a # personas más les gusta tu comentario} other {A {name} y a # personas más les gusta tu comentario}}',
  'mail.notice.sentence': '{sentence}.',
  'mail.notice.action': 'Abrir',
  'mail.someone_reported.subject':
    '{count, plural, one {Una denuncia nueva en {pod}} many {# denuncias nuevas en {pod}} other {# denuncias nuevas en {pod}}}',
  'mail.someone_reported.text':
    '{count, plural, one {Una denuncia nueva espera a la moderación.} many {# denuncias nuevas esperan a la moderación.} other {# denuncias nuevas esperan a la moderación.}}',
  'mail.someone_reported.action': 'Abrir las denuncias',
  'mail.reported.post': 'Publicaciones: {count}',
  'mail.reported.comment': 'Comentarios: {count}',
  'mail.reported.person': 'Personas: {count}',
  'mail.reported.message': 'Mensajes: {count}',
  'mail.reported.cluster': 'Grupos de spam: {count}',
  'mail.sign_up_waiting.subject':
    '{count, plural, one {Un registro espera en {pod}} many {# registros esperan en {pod}} other {# registros esperan en {pod}}}',
  'mail.sign_up_waiting.text':
    '{count, plural, one {Un registro espera una decisión.} many {# registros esperan una decisión.} other {# registros esperan una decisión.}}',
  'mail.sign_up_waiting.action': 'Abrir los registros',
  'mail.digest.subject':
    '{count, plural, one {Una notificación nueva en {pod}} many {# notificaciones nuevas en {pod}} other {# notificaciones nuevas en {pod}}}',
  'mail.digest.text': 'Lo que no has leído desde el último resumen:',
  'mail.digest.more': '{count, plural, one {# más} many {# más} other {# más}}',
  'mail.digest.action': 'Abrir tus notificaciones',
  'mail.account_footer': '{pod} envía este correo porque trata de una cuenta con esta dirección de correo.',
  'mail.notice_footer': '{pod} envía este correo porque no has desactivado los correos de aviso de este tipo.',
  'mail.unsubscribe': 'No recibir más estos correos',
} as const
